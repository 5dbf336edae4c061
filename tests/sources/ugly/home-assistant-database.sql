CREATE TABLE states_meta (metadata_id INTEGER PRIMARY KEY, entity_id VARCHAR(255));
CREATE TABLE states (state_id INTEGER PRIMARY KEY, state VARCHAR(255), last_updated_ts FLOAT, metadata_id INTEGER REFERENCES states_meta (metadata_id));
CREATE TABLE event_types (event_type_id INTEGER PRIMARY KEY, event_type VARCHAR(64));
INSERT INTO states_meta VALUES (1, 'sensor.lobby_players'), (2, 'sensor.pvp_players');
INSERT INTO states VALUES (1, '41', 1767571200.25, 1), (2, '12', 1767571200.5, 2), (3, 'unavailable', 1767571500.0, 1), (4, '13', 1767571500.0, 2);
