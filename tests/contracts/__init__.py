"""Contracts: what every activation, loss, data model, network, algorithm and paper must pass, found by themselves."""
