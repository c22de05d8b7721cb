import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0005-facts',
  up: (t) => [`CREATE TABLE facts (name ${t.text} PRIMARY KEY, value ${t.text} NOT NULL)${t.withoutRowid}`],
}
