# Asks whether a request may run, tells what it cost, and asks whether to back off.

import os

import grpc
from quota.v1 import quota_pb2 as quota
from quota.v1 import quota_pb2_grpc

# An answer that does not come within this is none: a check is then as good as allowed, and it is never sent twice.
SECONDS = 5.0

channel = grpc.insecure_channel(os.environ.get("QUOTA_GRPC", "127.0.0.1:8081"))
service = quota_pb2_grpc.QuotaServiceStub(channel)
token = os.environ.get("QUOTA_TOKEN")
metadata = [("authorization", f"Bearer {token}")] if token else []


def call(method, request):
    return method(request, timeout=SECONDS, metadata=metadata)


def check(accounts):
    answer = call(service.Check, quota.CheckRequest(accounts=accounts, node="gitaly-01"))
    if answer.decision == quota.CheckResponse.DECISION_ALLOW:
        print(f"{accounts.user}: allowed")
    else:
        print(f"{accounts.user}: denied, again in {answer.retry_after.ToTimedelta().total_seconds():.1f} s")
    return answer.reservation


def report(accounts, reservation, cpu_seconds):
    cost = quota.Cost(cpu_micros=round(cpu_seconds * 1e6))
    charge = quota.Charge(accounts=accounts, cost=cost, reservation=reservation)
    answer = call(service.Report, quota.ReportRequest(node="gitaly-01", charges=[charge]))
    print(f"{accounts.user}: {answer.applied} charge counted")


def back_off(*users):
    requests = [quota.BackoffRequest(accounts=quota.Accounts(user=user)) for user in users]
    answers = call(service.BatchBackoff, quota.BatchBackoffRequest(requests=requests)).results
    for user, answer in zip(users, answers):
        if not answer.backoff:
            print(f"{user}: go on")
        elif answer.permanent:
            print(f"{user}: give up")
        else:
            print(f"{user}: back off for {answer.retry_after.ToTimedelta().total_seconds():.1f} s")


carol = quota.Accounts(user="carol", ip="203.0.113.7")
reservation = check(carol)
report(carol, reservation, 200.0)
check(carol)
back_off("carol", "dave")
