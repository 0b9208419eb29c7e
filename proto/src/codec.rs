use prost::Message;
use prost::bytes::Buf as _;
use prost::encoding::{DecodeContext, decode_key, skip_field};
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder};
use tonic_prost::ProstCodec;

/// The most fields of a message that are looked at, repeated ones counted each. An empty element takes 2 bytes on the
/// wire and some 200 in memory, so the size of a message alone does not bound what it costs to read.
const MAX_FIELDS: usize = 4096;

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
        BoundedDecoder(self.0.decoder())
    }
}

/// What [`BoundedCodec`] reads with.
#[derive(Clone, Debug)]
pub struct BoundedDecoder<D>(D);

impl<D: Decoder<Error = Status>> Decoder for BoundedDecoder<D> {
    type Item = D::Item;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<D::Item>, Status> {
        // A message arrives as a whole, in one piece.
        if has_more_fields_than(MAX_FIELDS, buffer.chunk()) {
            return Err(Status::invalid_argument(format!("a message has at most {MAX_FIELDS} fields")));
        }
        self.0.decode(buffer)
    }
}

/// What cannot be read counts as its end: the decoder says what is wrong with it.
fn has_more_fields_than(most: usize, mut message: &[u8]) -> bool {
    let mut fields = 0;
    while !message.is_empty() && fields <= most {
        let skipped = decode_key(&mut message)
            .and_then(|(tag, wire_type)| skip_field(wire_type, tag, &mut message, DecodeContext::default()));
        if skipped.is_err() {
            return false;
        }
        fields += 1;
    }
    fields > most
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v1::{Charge, ReportRequest};

    #[test]
    fn fields_are_counted_before_they_are_built() {
        let report = |charges| {
            let charges = vec![Charge::default(); charges];
            ReportRequest { source: "s".into(), charges, ..ReportRequest::default() }.encode_to_vec()
        };
        assert!(!has_more_fields_than(10, &report(9)));
        assert!(has_more_fields_than(10, &report(10)));
        assert!(!has_more_fields_than(10, &[]));
        assert!(!has_more_fields_than(10, &[0xff; 100]), "that is the decoder's to say");
    }
}
