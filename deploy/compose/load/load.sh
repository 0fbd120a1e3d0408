#!/bin/bash
# Plays load.sql once a second until the container is stopped.
set -uo pipefail
PGPASSWORD="$(cat /run/secrets/postgres_password)"
export PGPASSWORD
while true; do
  psql -q -o /dev/null -v ON_ERROR_STOP=1 -f /load/load.sql || echo "load: will try again" >&2
  sleep 1
done
