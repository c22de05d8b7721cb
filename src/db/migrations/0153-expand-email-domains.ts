import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0153-expand-email-domains',
  up: (t) => [
    // Domains of email addresses whose users sign in with the provider of an organization. 'verify_time' is empty until the
    // organization has verified the domain by the record with 'token'. Only one organization can have verified a domain.
    `CREATE TABLE email_domains (
       uid         ${t.text} PRIMARY KEY,
       parent_uid  ${t.text} NOT NULL REFERENCES groups (uid) ON DELETE CASCADE,
       domain      ${t.text} NOT NULL,
       token       ${t.text} NOT NULL,
       verify_time ${t.text} NOT NULL,
       create_time ${t.text} NOT NULL,
       UNIQUE (parent_uid, domain)
     )${t.withoutRowid}`,
    `CREATE UNIQUE INDEX email_domains_verified ON email_domains (domain) WHERE verify_time <> ''`,
  ],
}
