"""Trained networks as a service: `groundup serve` answers by the Open Inference Protocol v2, and to pictures.

models      a run behind the service: its stage, proven equal to stage 2, and its answers
batching    requests that wait, computed together in a thread of their own
protocol    the bodies of the protocol: JSON, and tensors as bytes behind it
uploads     what is read of a request: limits, forms, pictures
guard       who is answered, and what is counted of every request
metrics     the numbers at /metrics
app         the addresses
server      listens, and ends in order
openapi.json, static/
            the addresses described for programs; a page to try them

Everything here needs the extra `web`, and nothing else of the project imports it.
"""
