"""A stand-in for the dashboard's pages, until they come."""

from starlette.routing import Route

routes: list[Route] = []
