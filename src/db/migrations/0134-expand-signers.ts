import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0134-expand-signers',
  up: (t) => [
    // Trusted signers of VEX statements in a place, by their keys. A row never changes, except for its end and its progress:
    // the last report whose signatures were compared with the key; -1 after all of them.
    `CREATE TABLE vex_signers (
       id            ${t.id},
       uid           ${t.text} NOT NULL UNIQUE,
       group_uid     ${t.text} NOT NULL REFERENCES groups (uid) ON DELETE CASCADE,
       scope_uid     ${t.text} NOT NULL,
       name          ${t.text} NOT NULL,
       public_key    ${t.text} NOT NULL,
       fingerprint   ${t.text} NOT NULL,
       reason        ${t.text} NOT NULL,
       actor         ${t.text} NOT NULL,
       create_time   ${t.text} NOT NULL,
       expire_time   ${t.text} NOT NULL,
       end_time      ${t.text} NOT NULL DEFAULT '',
       end_actor     ${t.text} NOT NULL DEFAULT '',
       end_reason    ${t.text} NOT NULL DEFAULT '',
       last_report   ${t.int} NOT NULL DEFAULT 0
     )${t.strict}`,
    `CREATE INDEX vex_signers_by_scope ON vex_signers (scope_uid, id)`,
    `CREATE INDEX vex_signers_by_group ON vex_signers (group_uid)`,
    `CREATE INDEX vex_signers_due ON vex_signers (expire_time, id) WHERE end_time = ''`,
    `CREATE INDEX vex_signers_new ON vex_signers (id) WHERE last_report >= 0`,
    // Number of signatures of a report, -1 if unknown; the trusted signers among them, as uids in JSON.
    // The signatures are checked again at `check_time`, if it is not empty.
    `ALTER TABLE scan_reports ADD COLUMN signatures ${t.int} NOT NULL DEFAULT -1`,
    `ALTER TABLE scan_reports ADD COLUMN signers ${t.text} NOT NULL DEFAULT '[]'`,
    `ALTER TABLE scan_reports ADD COLUMN check_time ${t.text} NOT NULL DEFAULT ''`,
    `CREATE INDEX scan_reports_signed ON scan_reports (organization, id) WHERE signatures <> 0`,
    `CREATE INDEX scan_reports_to_check ON scan_reports (organization, check_time, id) WHERE check_time <> ''`,
    // Statements of a trusted signer about a vulnerability in an image, or in one package of it. A statement that nothing has
    // to be done hides the vulnerability from 'from_time' to 'until_time', while the signer is trusted. 'said_time' is the
    // time in the document.
    `CREATE TABLE signed_statements (
       id            ${t.id},
       repo_uid      ${t.text} NOT NULL,
       digest        ${t.text} NOT NULL,
       vulnerability ${t.text} NOT NULL,
       package       ${t.text} NOT NULL,
       signer_uid    ${t.text} NOT NULL,
       status        ${t.text} NOT NULL,
       stated        ${t.text} NOT NULL,
       statement     ${t.text} NOT NULL,
       said_time     ${t.text} NOT NULL,
       from_time     ${t.text} NOT NULL,
       until_time    ${t.text} NOT NULL DEFAULT ''
     )${t.strict}`,
    `CREATE INDEX signed_statements_by_image ON signed_statements (repo_uid, digest, vulnerability, id)`,
    `CREATE UNIQUE INDEX signed_statements_now ON signed_statements (repo_uid, digest, signer_uid, vulnerability, package)
      WHERE until_time = ''`,
  ],
}
