CREATE TABLE polls (polled_at INTEGER, server TEXT, players INTEGER, ping REAL);
INSERT INTO polls VALUES (1767571200, 'lobby', 41, 18.5), (1767571200, 'PvP Arena', 12, 20.25), (1767571500, 'lobby', 44, 18.0), (1767571500, 'PvP Arena', NULL, NULL);
CREATE TABLE bans (banned_at INTEGER, name TEXT);
INSERT INTO bans VALUES (1767571300, 'griefer');
