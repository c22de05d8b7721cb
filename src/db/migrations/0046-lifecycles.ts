import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0046-lifecycles',
  up: (t) => [
    // Life of release lines, as published in lifecycle lists. `names` are the names of the product.
    `CREATE TABLE lifecycle_products (
       name        ${t.text} PRIMARY KEY,
       label       ${t.text} NOT NULL,
       names       ${t.text} NOT NULL,
       update_time ${t.text} NOT NULL
     )${t.withoutRowid}`,
    // By what a product is found; the lowest rank means it most.
    `CREATE TABLE lifecycle_names (
       name    ${t.text} NOT NULL,
       product ${t.text} NOT NULL REFERENCES lifecycle_products (name) ON DELETE CASCADE,
       rank    ${t.int} NOT NULL,
       PRIMARY KEY (name, product)
     )${t.withoutRowid}`,
    `CREATE INDEX lifecycle_names_by_product ON lifecycle_names (product, rank, name)`,
    // Days in ISO format, empty if unknown; `place` is the position in the list, the newest first.
    `CREATE TABLE lifecycles (
       product      ${t.text} NOT NULL REFERENCES lifecycle_products (name) ON DELETE CASCADE,
       cycle        ${t.text} NOT NULL,
       place        ${t.int} NOT NULL,
       release_date ${t.text} NOT NULL,
       eol_date     ${t.text} NOT NULL,
       ended        ${t.bool} NOT NULL,
       lts          ${t.bool} NOT NULL,
       lts_date     ${t.text} NOT NULL,
       latest       ${t.text} NOT NULL,
       broken       ${t.bool} NOT NULL,
       fips         ${t.bool} NOT NULL,
       PRIMARY KEY (product, cycle)
     )${t.withoutRowid}`,
    // The package that an image is about, as it was found last. \`basis\` is what it was found from: while that is the same,
    // so is the rest.
    `CREATE TABLE main_packages (
       repo_id ${t.int} NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
       digest  ${t.text} NOT NULL,
       basis   ${t.text} NOT NULL,
       name    ${t.text} NOT NULL,
       version ${t.text} NOT NULL,
       product ${t.text} NOT NULL,
       cycle   ${t.text} NOT NULL,
       PRIMARY KEY (repo_id, digest)
     )${t.withoutRowid}`,
    `CREATE INDEX main_packages_by_cycle ON main_packages (product, cycle) WHERE product <> ''`,
    // No longer rebuilt, as far as is known; \`deprecated\` stays what a client has set.
    `ALTER TABLE tags ADD COLUMN inactive ${t.bool} NOT NULL DEFAULT 0`,
  ],
}
