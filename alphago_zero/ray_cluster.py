"""A Ray cluster: how to join it, and who has a place there (docs/scale.md).

In: the address of a cluster, or none for one of this computer alone. Out: this process as its driver.
"""

from __future__ import annotations

import os
import socket
import warnings

import ray
from absl import logging

from alphago_zero.config import Config
from alphago_zero.errors import UserError


def connect(address: str | None) -> None:
    """Join the cluster at `address`; without one, start one on this computer, that listens to nobody else."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing phones home
    os.environ.setdefault("RAY_worker_niceness", "0")  # else actors give way to every other program
    warnings.filterwarnings("ignore", category=FutureWarning, module="ray")  # of what later releases of Ray will change
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    if address is None:
        ray.init("local", include_dashboard=False, _node_ip_address="127.0.0.1", **quiet)
        return
    if address != "auto":
        host, colon, port = address.rpartition(":")
        if not colon or "/" in host or not port.isdecimal():
            raise UserError(f"--address {address}: expected HOST:PORT (ray start --head says which), or auto")
        error = _does_not_answer(host, port)
        if error:
            raise UserError(f"--address {address}: no Ray cluster answers there ({error})")
        # Ray takes 127.0.0.1 for this computer's address in the network. A cluster that listens to nobody else is not
        # found there, but by another name of this computer.
        if host in ("127.0.0.1", "localhost") and _does_not_answer(ray.util.get_node_ip_address(), port):
            address = f"0.0.0.0:{port}"
    try:
        ray.init(address, **quiet)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise UserError(f"--address {address}: {' '.join(str(error).split())}") from None


def _does_not_answer(host: str, port: str) -> str:
    """Why nobody can be reached there; empty if somebody can. (Ray itself would try for minutes.)"""
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except (OSError, OverflowError) as error:
        return str(error)
    return ""


def count_actors(config: Config) -> int:
    """Self-play actors on CPUs: as many as `ray.actors` says, or one for each CPU that nobody else reserves."""
    settings = config.ray
    free = ray.cluster_resources().get("CPU", 0) - _reserved(config, 0)["CPU"]
    least = 0 if settings.gpu_actors else 1
    return settings.actors or max(least, int(free // (settings.actor_cpus or 1)))


def _reserved(config: Config, actors: int) -> dict:
    """What all parts reserve, with so many self-play actors on CPUs."""
    settings = config.ray
    actor_cpus = (actors + settings.gpu_actors) * settings.actor_cpus
    actor_gpus = settings.gpu_actors * settings.gpu_share
    return {
        "CPU": actor_cpus + settings.learner_cpus + settings.evaluators * settings.evaluator_cpus,
        "GPU": actor_gpus + settings.learner_gpus + settings.evaluators * settings.evaluator_gpus,
    }


def tell_places(config: Config, actors: int) -> None:
    """Who is to work on what."""
    settings, there = config.ray, ray.cluster_resources()
    nodes = sum(node["Alive"] for node in ray.nodes())
    who = f"{actors} actors and {settings.gpu_actors} on GPUs, {settings.evaluators} evaluators, a learner"
    cpus, gpus = there.get("CPU", 0), there.get("GPU", 0)
    logging.info("ray: %d nodes, %g CPUs, %g GPUs; self-play by %s", nodes, cpus, gpus, who)
    for kind, wanted in _reserved(config, actors).items():
        if wanted > there.get(kind, 0):
            logging.warning(
                "ray: the configuration reserves %g %ss and the cluster has %g: somebody waits for more",
                wanted,
                kind,
                there.get(kind, 0),
            )
