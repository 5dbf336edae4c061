CREATE TABLE polls (at TEXT, server TEXT, players INTEGER);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
INSERT INTO polls SELECT strftime('%Y-%m-%dT%H:%M:%SZ', 1767571200 + 300 * i, 'unixepoch'), 'lobby', i % 50 FROM n;
