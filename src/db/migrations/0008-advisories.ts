import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0008-advisories',
  up: (t) => [
    `CREATE TABLE advisories (
       id                    ${t.id},
       uid                   ${t.text} NOT NULL UNIQUE,
       parent_uid            ${t.text} NOT NULL REFERENCES groups (uid),
       advisory_id           ${t.text} NOT NULL,
       legacy_advisory_id    ${t.text} NOT NULL DEFAULT '',
       origin                ${t.text} NOT NULL,
       author                ${t.text} NOT NULL,
       artifact_name         ${t.text} NOT NULL,
       artifact_type         ${t.text} NOT NULL,
       artifact_architecture ${t.text} NOT NULL,
       component_name        ${t.text} NOT NULL,
       component_type        ${t.text} NOT NULL,
       component_location    ${t.text} NOT NULL,
       aliases               ${t.text} NOT NULL,
       events                ${t.text} NOT NULL,
       latest_event_type     ${t.int} NOT NULL,
       source_hash           ${t.text} NOT NULL DEFAULT '',
       create_time           ${t.text} NOT NULL,
       update_time           ${t.text} NOT NULL,
       UNIQUE (parent_uid, advisory_id)
     )${t.strict}`,
    `CREATE INDEX advisories_by_parent ON advisories (parent_uid, uid)`,

    // Every value that a filter can name, the advisories that have it, and how many those are at each place.
    `CREATE TABLE advisory_terms (
       id    ${t.id},
       facet ${t.int} NOT NULL,
       value ${t.text} NOT NULL,
       UNIQUE (facet, value)
     )${t.strict}`,
    `CREATE TABLE advisory_postings (
       term_id ${t.int} NOT NULL,
       uid     ${t.text} NOT NULL,
       id      ${t.int} NOT NULL,
       PRIMARY KEY (term_id, uid)
     )${t.withoutRowid}`,
    `CREATE TABLE advisory_term_counts (
       term_id ${t.int} NOT NULL,
       place   ${t.text} NOT NULL,
       shard   ${t.int} NOT NULL,
       total   ${t.int} NOT NULL,
       PRIMARY KEY (term_id, place, shard)
     )${t.withoutRowid}`,
    // A text within a term is the start of one of its suffixes.
    `CREATE TABLE advisory_suffixes (
       suffix  ${t.text} NOT NULL,
       term_id ${t.int} NOT NULL,
       PRIMARY KEY (suffix, term_id)
     )${t.withoutRowid}`,
    `CREATE TABLE advisory_texts (
       uid  ${t.text} PRIMARY KEY,
       text ${t.text} NOT NULL
     )${t.withoutRowid}`,

    `CREATE TABLE vulnerabilities (
       id            ${t.text} PRIMARY KEY,
       aliases       ${t.text} NOT NULL,
       summary       ${t.text} NOT NULL,
       details       ${t.text} NOT NULL,
       "references"  ${t.text} NOT NULL,
       severities    ${t.text} NOT NULL,
       publish_time  ${t.text} NOT NULL,
       modify_time   ${t.text} NOT NULL,
       create_time   ${t.text} NOT NULL,
       update_time   ${t.text} NOT NULL
     )${t.strict}`,
    // Under its own id and under each alias.
    `CREATE TABLE vulnerability_names (
       name             ${t.text} NOT NULL,
       vulnerability_id ${t.text} NOT NULL REFERENCES vulnerabilities (id),
       PRIMARY KEY (name, vulnerability_id)
     )${t.withoutRowid}`,
  ],
}
