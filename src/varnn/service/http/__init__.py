"""Requests in, answers out: routes and pages, who may, how much, and what is seen from outside."""
