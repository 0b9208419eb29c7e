use std::any::TypeId;

use prost::Message;
use prost::bytes::Buf as _;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder};
use tonic_prost::ProstCodec;

use crate::v1::SessionRequest;

/// The most fields of a message that are looked at, repeated ones counted each. An empty element takes 2 bytes on the
/// wire and some 200 in memory, so the size of a message alone does not bound what it costs to read.
const MAX_FIELDS: usize = 4096;

/// Whose fields count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Count {
    /// Those of the message.
    Own,
    /// Those of the messages in it too: its fields are messages that go by themselves elsewhere.
    Within,
}

impl Count {
    fn of<M: 'static>() -> Self {
        if TypeId::of::<M>() == TypeId::of::<SessionRequest>() { Self::Within } else { Self::Own }
    }
}

/// Reads and writes messages as prost does, and refuses one of more than 4,096 fields before it is built.
#[derive(Clone, Debug)]
pub struct BoundedCodec<T, U>(ProstCodec<T, U>);

impl<T, U> Default for BoundedCodec<T, U> {
    fn default() -> Self {
        Self(ProstCodec::default())
    }
}

impl<T, U> Codec for BoundedCodec<T, U>
where
    T: Message + Send + 'static,
    U: Message + Default + Send + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = <ProstCodec<T, U> as Codec>::Encoder;
    type Decoder = BoundedDecoder<<ProstCodec<T, U> as Codec>::Decoder>;

    fn encoder(&mut self) -> Self::Encoder {
        self.0.encoder()
    }

    fn decoder(&mut self) -> Self::Decoder {
        BoundedDecoder(self.0.decoder(), Count::of::<U>())
    }
}

/// What [`BoundedCodec`] reads with.
#[derive(Clone, Debug)]
pub struct BoundedDecoder<D>(D, Count);

impl<D: Decoder<Error = Status>> Decoder for BoundedDecoder<D> {
    type Item = D::Item;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<D::Item>, Status> {
        // A message arrives as a whole, in one piece.
        if fields(buffer.chunk(), self.1) > MAX_FIELDS {
            return Err(Status::invalid_argument(format!("a message has at most {MAX_FIELDS} fields")));
        }
        self.0.decode(buffer)
    }
}

/// How many fields a message has; no more than one above the most are counted. What cannot be read counts as its end: the
/// decoder says what is wrong with it.
fn fields(mut message: &[u8], count: Count) -> usize {
    let mut fields = 0;
    while fields <= MAX_FIELDS
        && let Ok((tag, wire_type)) = decode_key(&mut message)
    {
        fields += 1;
        if count == Count::Within && wire_type == WireType::LengthDelimited {
            let Some(within) = take(&mut message) else { break };
            fields += self::fields(within, Count::Own);
        } else if skip_field(wire_type, tag, &mut message, DecodeContext::default()).is_err() {
            break;
        }
    }
    fields
}

/// What a length stands before.
fn take<'a>(message: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(decode_varint(message).ok()?).ok()?;
    let (taken, rest) = message.split_at_checked(length)?;
    *message = rest;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v1::{Charge, ReportRequest, session_request};

    fn report(charges: usize) -> ReportRequest {
        let charges = vec![Charge::default(); charges];
        ReportRequest { source: "s".into(), charges, ..ReportRequest::default() }
    }

    #[test]
    fn fields_are_counted_before_they_are_built() {
        let own = |message: &[u8]| fields(message, Count::Own);
        assert_eq!(own(&report(9).encode_to_vec()), 10);
        assert_eq!(own(&report(MAX_FIELDS - 1).encode_to_vec()), MAX_FIELDS);
        assert_eq!(own(&report(2 * MAX_FIELDS).encode_to_vec()), MAX_FIELDS + 1, "the rest is not looked at");
        assert_eq!(own(&[]), 0);
        assert_eq!(own(&[0xff; 100]), 0, "that is the decoder's to say");
        assert_eq!(Count::of::<ReportRequest>(), Count::Own);
    }

    #[test]
    fn those_of_what_a_session_carries_count_though_it_is_one_field() {
        let message = Some(session_request::Message::Report(report(9)));
        let carried = SessionRequest { message }.encode_to_vec();
        let count = Count::of::<SessionRequest>();
        assert_eq!(fields(&carried, count), 11);
        assert_eq!(fields(&carried.repeat(3), count), 33, "each adds to the one before");
        for end in 0..carried.len() {
            assert!(fields(&carried[..end], count) <= 11);
        }
    }
}
