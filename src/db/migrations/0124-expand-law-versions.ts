import type { Migration } from '../migrate.ts'

const tables = ['retention_rules', 'tag_rules', 'holds', 'quarantined']
const changed = [
  { verb: 'INSERT', rows: 'NEW TABLE AS changed' },
  { verb: 'UPDATE', rows: 'NEW TABLE AS changed' },
  { verb: 'DELETE', rows: 'OLD TABLE AS changed' },
]

export const migration: Migration = {
  id: '0124-expand-law-versions',
  up: (t) => [
    `INSERT INTO law_versions (organization, version)
     SELECT uid, 1 FROM groups
      WHERE length(uid) = 40 AND uid IN (
        SELECT substr(scope_uid, 1, 40) FROM retention_rules UNION SELECT substr(scope_uid, 1, 40) FROM tag_rules
         UNION SELECT substr(scope_uid, 1, 40) FROM holds UNION SELECT substr(scope_uid, 1, 40) FROM quarantined)
        AND uid NOT IN (SELECT organization FROM law_versions)`,
    ...(t.engine === 'postgres' ? raisedByAnyBuild : []),
  ],
}

// Only a database of several servers may be written by another build, which need not know of the versions.
const raisedByAnyBuild = [
  `CREATE FUNCTION raise_law() RETURNS trigger LANGUAGE plpgsql AS $$
   BEGIN
     INSERT INTO law_versions (organization, version)
     SELECT g.uid, 1 FROM groups g WHERE g.uid IN (SELECT DISTINCT substr(scope_uid, 1, 40) FROM changed) ORDER BY g.uid
         ON CONFLICT (organization) DO UPDATE SET version = law_versions.version + 1;
     RETURN NULL;
   END $$`,
  ...tables.flatMap((table) =>
    changed.map(
      ({ verb, rows }) => `CREATE TRIGGER ${table}_${verb.toLowerCase()}_law AFTER ${verb} ON ${table}
       REFERENCING ${rows} FOR EACH STATEMENT EXECUTE FUNCTION raise_law()`,
    ),
  ),
]
