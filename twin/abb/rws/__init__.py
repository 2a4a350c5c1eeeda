"""Robot Web Services of a virtual controller: HTTP, sessions, services, subscriptions."""
