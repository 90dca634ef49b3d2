"""Published protocols, their execution and their scorecard."""
