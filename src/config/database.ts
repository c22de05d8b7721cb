// Which database, and who looks after its log.
import { oneOf, setting } from './basics.ts'
import { databaseUrl } from './values.ts'

export const databaseSettings = {
  database: setting({
    env: 'PINFOLD_DATABASE',
    flag: '--database',
    parse: databaseUrl,
    default: '',
    doc: 'A `postgres://` URL; `?schema=NAME` picks a schema, `pooled=true` is for [a pooler](scale.md#poolers) in between. Default: the embedded database in the data folder.',
  }),
  checkpoints: setting({
    env: 'PINFOLD_CHECKPOINTS',
    parse: oneOf('server', 'external'),
    default: 'server',
    doc: 'Who brings what was committed from the log of the embedded database into the database itself. `external`: a program such as [Litestream](backup.md#to-any-moment), without which the log grows for ever.',
  }),
}
