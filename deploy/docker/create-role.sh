#!/bin/sh
# Runs once, on an empty volume: the role and the database of Memlane. The role is no superuser. The
# superuser `postgres` has no password, so it can log in only through the socket of the container.
set -eu
psql --set ON_ERROR_STOP=1 --set password="$POSTGRES_PASSWORD" --username postgres <<'SQL'
CREATE ROLE memlane LOGIN PASSWORD :'password';
CREATE DATABASE memlane OWNER memlane;
ALTER ROLE postgres PASSWORD NULL;
SQL
