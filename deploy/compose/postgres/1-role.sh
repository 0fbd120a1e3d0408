#!/bin/bash
# The role of the connector: LOGIN, REPLICATION, and SELECT on the captured tables (2-shop.sql).
set -euo pipefail
psql -v ON_ERROR_STOP=1 -U postgres -d shop \
  -v password="$(cat /run/secrets/tidemark_password)" <<'SQL'
CREATE ROLE tidemark LOGIN REPLICATION PASSWORD :'password';
SQL
