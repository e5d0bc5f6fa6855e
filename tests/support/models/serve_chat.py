"""The process behind `chat_server`: it serves a model until its standard input closes."""

from __future__ import annotations

import os
import sys

import xllamacpp

WINDOW = 4096


def serve(path: str, port: int) -> None:
    parameters = xllamacpp.CommonParams()
    parameters.model.path = path
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = port
    parameters.n_ctx = WINDOW
    parameters.n_parallel = 1
    # More threads wait for each other in spin loops, which is far slower on a busy machine.
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
    parameters.warmup = False
    # So small a model repeats itself: it is kept from long repetitions, and drawn from the same lots every time.
    parameters.sampling.temp = 0.5
    parameters.sampling.seed = 4
    parameters.sampling.dry_multiplier = 0.8
    server = xllamacpp.Server(parameters)
    sys.stdin.buffer.read()
    del server
    os._exit(0)


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
