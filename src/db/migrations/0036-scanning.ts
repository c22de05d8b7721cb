import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0036-scanning',
  up: (t) => [
    // Data sources of vulnerabilities, with their age and their last error.
    `CREATE TABLE vulnerability_sources (
       id          ${t.id},
       name        ${t.text} NOT NULL UNIQUE,
       url         ${t.text} NOT NULL,
       licence     ${t.text} NOT NULL,
       ecosystems  ${t.text} NOT NULL,
       fingerprint ${t.text} NOT NULL DEFAULT '',
       build_time  ${t.text} NOT NULL DEFAULT '',
       fetch_time  ${t.text} NOT NULL DEFAULT '',
       try_time    ${t.text} NOT NULL DEFAULT '',
       generation  ${t.int} NOT NULL DEFAULT 0,
       error       ${t.text} NOT NULL DEFAULT ''
     )${t.strict}`,

    `ALTER TABLE vulnerabilities ADD COLUMN source ${t.text} NOT NULL DEFAULT ''`,
    `ALTER TABLE vulnerabilities ADD COLUMN withdraw_time ${t.text} NOT NULL DEFAULT ''`,
    `ALTER TABLE vulnerabilities ADD COLUMN upstream ${t.text} NOT NULL DEFAULT '[]'`,

    // Records of a source about vulnerabilities, current and former ones. A row never changes, except for the end of its
    // validity, since reports of past days refer to it.
    `CREATE TABLE vulnerability_records (
       id            ${t.id},
       source_id     ${t.int} NOT NULL REFERENCES vulnerability_sources (id),
       record_id     ${t.text} NOT NULL,
       generation    ${t.int} NOT NULL,
       hash          ${t.text} NOT NULL,
       aliases       ${t.text} NOT NULL,
       upstream      ${t.text} NOT NULL,
       summary       ${t.text} NOT NULL,
       severities    ${t.text} NOT NULL,
       "references"  ${t.text} NOT NULL,
       publish_time  ${t.text} NOT NULL,
       modify_time   ${t.text} NOT NULL,
       withdraw_time ${t.text} NOT NULL,
       from_time     ${t.text} NOT NULL,
       until_time    ${t.text} NOT NULL DEFAULT ''
     )${t.strict}`,
    `CREATE UNIQUE INDEX vulnerability_records_now ON vulnerability_records (source_id, record_id)
      WHERE until_time = ''`,
    `CREATE INDEX vulnerability_records_by_generation ON vulnerability_records (source_id, generation, id)
      WHERE until_time = ''`,
    // Under its own id, its aliases and what it was made from.
    `CREATE TABLE vulnerability_record_names (
       name      ${t.text} NOT NULL,
       record_no ${t.int} NOT NULL REFERENCES vulnerability_records (id),
       PRIMARY KEY (name, record_no)
     )${t.withoutRowid}`,
    `CREATE INDEX vulnerability_record_names_by_record ON vulnerability_record_names (record_no)`,

    // Statements of a record about one package. The place is empty for statements that apply to everybody, else an
    // organization.
    `CREATE TABLE affected_packages (
       id         ${t.id},
       record_no  ${t.int} NOT NULL REFERENCES vulnerability_records (id),
       place      ${t.text} NOT NULL,
       ecosystem  ${t.text} NOT NULL,
       name       ${t.text} NOT NULL,
       ranges     ${t.text} NOT NULL,
       versions   ${t.text} NOT NULL,
       state      ${t.int} NOT NULL,
       severity   ${t.int} NOT NULL,
       qualifiers ${t.text} NOT NULL,
       until_time ${t.text} NOT NULL DEFAULT ''
     )${t.strict}`,
    `CREATE INDEX affected_packages_now ON affected_packages (name, ecosystem, id) WHERE until_time = ''`,
    `CREATE INDEX affected_packages_by_record ON affected_packages (record_no, id)`,

    // The distinct packages of all images. Without a time it was never compared.
    `CREATE TABLE components (
       id             ${t.id},
       kind           ${t.text} NOT NULL,
       ecosystem      ${t.text} NOT NULL,
       name           ${t.text} NOT NULL,
       version        ${t.text} NOT NULL,
       origin         ${t.text} NOT NULL,
       origin_version ${t.text} NOT NULL,
       arch           ${t.text} NOT NULL,
       match_time     ${t.text} NOT NULL DEFAULT '',
       UNIQUE (name, version, ecosystem, kind, origin, origin_version, arch)
     )${t.strict}`,
    `CREATE INDEX components_by_origin ON components (origin, name, id) WHERE origin <> name`,
    `CREATE INDEX components_unmatched ON components (id) WHERE match_time = ''`,

    // A list of packages in a distribution. Lists of before this table have hashes that do not tell the distribution.
    `CREATE TABLE component_lists (
       id                   ${t.id},
       hash                 ${t.text} NOT NULL,
       distribution         ${t.text} NOT NULL,
       distribution_version ${t.text} NOT NULL,
       ecosystem            ${t.text} NOT NULL,
       state                ${t.int} NOT NULL,
       packages             ${t.int} NOT NULL,
       create_time          ${t.text} NOT NULL,
       UNIQUE (hash, distribution, distribution_version)
     )${t.strict}`,
    `CREATE TABLE list_components (
       list_id      ${t.int} NOT NULL REFERENCES component_lists (id),
       component_id ${t.int} NOT NULL REFERENCES components (id),
       owner_id     ${t.int} NOT NULL DEFAULT 0,
       locations    ${t.text} NOT NULL DEFAULT '',
       PRIMARY KEY (list_id, component_id)
     )${t.withoutRowid}`,
    `CREATE INDEX list_components_by_component ON list_components (component_id, list_id)`,

    // Findings: a package is vulnerable, or it cannot be decided, from one moment to another.
    `CREATE TABLE findings (
       id           ${t.id},
       component_id ${t.int} NOT NULL REFERENCES components (id),
       affected_id  ${t.int} NOT NULL REFERENCES affected_packages (id),
       place        ${t.text} NOT NULL,
       state        ${t.int} NOT NULL,
       severity     ${t.int} NOT NULL,
       found_time   ${t.text} NOT NULL,
       gone_time    ${t.text} NOT NULL DEFAULT ''
     )${t.strict}`,
    `CREATE UNIQUE INDEX findings_now ON findings (component_id, affected_id) WHERE gone_time = ''`,
    `CREATE INDEX findings_by_component ON findings (component_id, id)`,
    `CREATE INDEX findings_by_affected ON findings (affected_id, id)`,

    // Current number of vulnerabilities of a list: with public data, and where an organization's own advisories change it.
    `CREATE TABLE list_severities (
       list_id     ${t.int} NOT NULL REFERENCES component_lists (id),
       place       ${t.text} NOT NULL,
       critical    ${t.int} NOT NULL,
       high        ${t.int} NOT NULL,
       medium      ${t.int} NOT NULL,
       low         ${t.int} NOT NULL,
       negligible  ${t.int} NOT NULL,
       unknown     ${t.int} NOT NULL,
       gaps        ${t.int} NOT NULL,
       change_time ${t.text} NOT NULL,
       PRIMARY KEY (list_id, place)
     )${t.withoutRowid}`,

    // Items that wait to be compared again. The owner and its fence are stored; results of a former owner are refused.
    `CREATE TABLE match_queue (
       kind     ${t.int} NOT NULL,
       place    ${t.text} NOT NULL,
       item     ${t.text} NOT NULL,
       due_time ${t.text} NOT NULL,
       attempts ${t.int} NOT NULL DEFAULT 0,
       owner    ${t.text} NOT NULL DEFAULT '',
       fence    ${t.int} NOT NULL DEFAULT 0,
       PRIMARY KEY (kind, place, item)
     )${t.withoutRowid}`,
    `CREATE INDEX match_queue_by_turn ON match_queue (owner, place, due_time, kind, item)`,
    // Queue the advisories that exist before this migration.
    `INSERT INTO match_queue (kind, place, item, due_time) SELECT 2, substr(uid, 1, 40), uid, update_time FROM advisories`,
  ],
}
