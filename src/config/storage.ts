// Settings of the database, of the key that encrypts secrets in it, and of blobs.

import { defaultData, folder, oneOf, onOff, setting, whole } from './basics.ts'
import { blobStore, clients, databaseUrl, directDatabaseUrl, masterKey } from './values.ts'

export const databaseSettings = {
  data: setting({
    env: 'PINFOLD_DATA',
    flag: '--data',
    parse: folder,
    default: defaultData,
    doc: 'Folder of the embedded SQLite database and of the master key.',
  }),
  database: setting({
    env: 'PINFOLD_DATABASE',
    flag: '--database',
    parse: databaseUrl,
    default: '',
    defaultMeans: 'the embedded database in the data folder',
    doc: 'URL of a PostgreSQL database, `postgres://…`.',
    note: '`?schema=NAME` selects a schema. `pooled=true` is necessary behind [a connection pooler](operations/scale.md#poolers).',
  }),
  databaseDirect: setting({
    env: 'PINFOLD_DATABASE_DIRECT',
    parse: directDatabaseUrl,
    default: '',
    defaultMeans: 'none, so migrations through a pooler are refused',
    doc: 'URL of the same database without the connection pooler, for migrations.',
    note: 'Only for a database URL with `pooled=true`.',
  }),
  sqliteCheckpoints: setting({
    env: 'PINFOLD_SQLITE_CHECKPOINTS',
    formerly: 'PINFOLD_CHECKPOINTS',
    parse: oneOf('server', 'external'),
    default: 'server',
    doc: 'Program that copies committed data from the write-ahead log of the embedded database to its file: `server` or `external`.',
    note: '`external` is for a program such as [Litestream](guides/back-up-and-restore.md#point-in-time-recovery). Without such a program the log grows without limit.',
  }),
  migrateAtStart: setting({
    env: 'PINFOLD_MIGRATE_AT_START',
    parse: onOff,
    default: 'off',
    doc: '`on` migrates a PostgreSQL database of an earlier version when the server starts.',
    note: 'With `off` the server does not start until you run `pinfold migrate`. An embedded database is always migrated.',
  }),
  masterKey: setting({
    env: 'PINFOLD_MASTER_KEY',
    parse: masterKey,
    default: '',
    defaultMeans: '`master.key` in the data folder, created at the first start',
    doc: 'Key that encrypts all stored secrets: 32 bytes, as base64 or hex.',
    note: 'Required with a database URL.',
  }),
  masterKeyNew: setting({
    env: 'PINFOLD_MASTER_KEY_NEW',
    parse: masterKey,
    default: '',
    doc: 'Next master key, for `pinfold server keys rotate-master`.',
    note: 'While both keys are set, the server uses the one that fits the database.',
  }),
}

export const blobSettings = {
  blobs: setting({
    env: 'PINFOLD_BLOBS',
    flag: '--blobs',
    parse: blobStore,
    default: '',
    defaultMeans: '`blobs` in the data folder',
    doc: 'Location of blobs: a folder (path or `file://` URL) or a bucket (`s3://bucket/prefix?endpoint=…&region=…`).',
    note: 'All servers of a database use the same location. See [storage](operations/storage.md).',
  }),
  blobRedirects: setting({
    env: 'PINFOLD_BLOB_REDIRECTS',
    parse: clients,
    default: 'off',
    doc: 'Clients that are redirected to the bucket for larger blobs: `on`, `off`, or addresses and CIDR ranges, separated by commas.',
    note: 'An entry after `!` is excluded, as in `on,!10.0.0.0/8`. A redirect is valid for up to 5 minutes.',
  }),
  blobGraceSeconds: setting({
    env: 'PINFOLD_BLOB_GRACE_SECONDS',
    parse: whole(1, 365 * 86_400),
    default: '86400',
    doc: 'Seconds that an unused blob or an unfinished upload is kept after a push last used it.',
  }),
  blobTrashSeconds: setting({
    env: 'PINFOLD_BLOB_TRASH_SECONDS',
    parse: whole(0, 365 * 86_400),
    default: '604800',
    doc: 'Seconds that the content of a deleted blob stays in the blob store.',
    note: 'A backup of the database that is not older can be restored without a copy of the blobs. `0` removes the content during garbage collection. With `PINFOLD_BLOB_REDIRECTS` the content stays for at least 65 minutes.',
  }),
}
