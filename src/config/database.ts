// Settings of the database, and of the program that checkpoints its log.
import { oneOf, setting } from './basics.ts'
import { databaseUrl, directDatabaseUrl } from './values.ts'

export const databaseSettings = {
  database: setting({
    env: 'PINFOLD_DATABASE',
    flag: '--database',
    parse: databaseUrl,
    default: '',
    doc: 'A `postgres://` URL; `?schema=NAME` picks a schema, `pooled=true` is for [a pooler](operations/scale.md#poolers) in between. Default: the embedded database in the data folder.',
  }),
  databaseDirect: setting({
    env: 'PINFOLD_DATABASE_DIRECT',
    parse: directDatabaseUrl,
    default: '',
    doc: 'With `pooled=true`: a URL of the same database without the pooler, for migrations, which need a session. Default: none, so that migrations are refused.',
  }),
  checkpoints: setting({
    env: 'PINFOLD_CHECKPOINTS',
    parse: oneOf('server', 'external'),
    default: 'server',
    doc: 'Who brings what was committed from the log of the embedded database into the database itself. `external`: a program such as [Litestream](guides/back-up-and-restore.md#point-in-time-recovery), without which the log grows for ever.',
  }),
}
