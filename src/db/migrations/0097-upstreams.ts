import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0097-upstreams',
  up: (t) => [
    // Registries elsewhere, as one account sees them. \`allow\` is a JSON list; \`password\` is sealed, and empty for none.
    `CREATE TABLE upstreams (
       id                  ${t.id},
       uid                 ${t.text} NOT NULL UNIQUE,
       parent_uid          ${t.text} NOT NULL REFERENCES groups (uid),
       name                ${t.text} NOT NULL,
       url                 ${t.text} NOT NULL,
       prefix              ${t.text} NOT NULL,
       username            ${t.text} NOT NULL,
       password            ${t.bytes} NOT NULL,
       allow               ${t.text} NOT NULL,
       requests_per_second ${t.int} NOT NULL,
       create_time         ${t.text} NOT NULL,
       update_time         ${t.text} NOT NULL,
       UNIQUE (parent_uid, name)
     )${t.strict}`,
    `CREATE INDEX upstreams_by_parent ON upstreams (parent_uid, uid)`,
    `CREATE INDEX upstreams_by_name ON upstreams (name, uid)`,
    // Upstream of a mirrored repo. `tags` is a JSON list.
    `CREATE TABLE follows (
       repo_uid     ${t.text} PRIMARY KEY REFERENCES repos (uid) ON DELETE CASCADE,
       upstream_uid ${t.text} NOT NULL REFERENCES upstreams (uid),
       path         ${t.text} NOT NULL,
       mode         ${t.int} NOT NULL,
       tags         ${t.text} NOT NULL,
       interval_ms  ${t.int} NOT NULL,
       create_time  ${t.text} NOT NULL,
       update_time  ${t.text} NOT NULL
     )${t.withoutRowid}`,
    `CREATE INDEX follows_by_upstream ON follows (upstream_uid, repo_uid)`,
    // State of a mirror, in a table of its own since it changes all the time. `list_time` is when the last listing of all
    // tags began, `list_due` when the next one is due, and `due_time` when anything is.
    `CREATE TABLE follow_states (
       repo_uid   ${t.text} PRIMARY KEY REFERENCES follows (repo_uid) ON DELETE CASCADE,
       state      ${t.int} NOT NULL,
       state_time ${t.text} NOT NULL,
       problem    ${t.text} NOT NULL,
       failures   ${t.int} NOT NULL,
       list_time  ${t.text} NOT NULL,
       list_due   ${t.text} NOT NULL,
       due_time   ${t.text} NOT NULL
     )${t.withoutRowid}`,
    `CREATE INDEX follow_states_by_due_time ON follow_states (due_time, repo_uid)`,
    // The tags that are looked at. \`checked_time\` is when the last look began that saw the tag as the ledger has it; \`missed\`
    // is how many looks in a row have not found it.
    `CREATE TABLE follow_tags (
       repo_uid     ${t.text} NOT NULL REFERENCES follows (repo_uid) ON DELETE CASCADE,
       tag          ${t.text} NOT NULL,
       checked_time ${t.text} NOT NULL,
       missed       ${t.int} NOT NULL,
       due_time     ${t.text} NOT NULL,
       PRIMARY KEY (repo_uid, tag)
     )${t.withoutRowid}`,
    `CREATE INDEX follow_tags_by_due_time ON follow_tags (repo_uid, due_time, tag)`,
    // Last check of the upstream before each row of tag history that was mirrored. Like tag history it only grows; `repo_id`
    // is the number of the ledger.
    `CREATE TABLE tag_observations (
       repo_id        ${t.int} NOT NULL REFERENCES ledgers (id) ON DELETE CASCADE,
       tag            ${t.text} NOT NULL,
       time           ${t.text} NOT NULL,
       checked_before ${t.text} NOT NULL,
       PRIMARY KEY (repo_id, tag, time)
     )${t.withoutRowid}`,
  ],
}
