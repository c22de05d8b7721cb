import { join } from 'node:path'
import type { Config } from '#config.ts'
import { writeFact } from '#db/facts.ts'
import { holdNodes, listNodes, livingNode } from '#db/nodes.ts'
import { resealRows } from '#db/sealed-rows.ts'
import type { Db } from '#db/sql.ts'
import { takeServeLock } from '#db/sqlite/serve-lock.ts'
import { parseMasterKey, promoteMasterKey, stageMasterKey } from '#lib/crypto/master-key.ts'
import { createSealer, type Sealer } from '#lib/crypto/seal.ts'
import { openExisting } from '#open-database.ts'
import { CliError, type Command, type CommandGroup, exitCodes } from '../shape/command.ts'
import { configOf, settingOptions } from '../shape/settings.ts'

const rotateMaster: Command = {
  name: 'rotate-master',
  summary: 'Replace the master key and encrypt every stored secret under the new one',
  details: `Stop every server first. The new key is made in the data folder; where the key comes from PINFOLD_MASTER_KEY,
PINFOLD_MASTER_KEY_NEW has to be the new one. Everything is encrypted anew or nothing is. When the command is killed, run
it again, or start the server, which takes the key that fits.`,
  options: settingOptions('data', 'database'),
  async run(terminal, options) {
    const config = { ...configOf(terminal.env, options), logLevel: 'warn' as const }
    const inFile = config.masterKey === ''
    if (!inFile && config.masterKeyNew === '') {
      throw new CliError(exitCodes.usage, 'PINFOLD_MASTER_KEY_NEW must be the new key; openssl rand -hex 32 makes one')
    }
    if (!inFile && parseMasterKey(config.masterKeyNew).equals(parseMasterKey(config.masterKey))) {
      throw new CliError(exitCodes.usage, 'PINFOLD_MASTER_KEY_NEW is PINFOLD_MASTER_KEY; it must be another key')
    }
    await using opened = new AsyncDisposableStack()
    // What finds no database must not make a folder for its lock.
    const { db, sealer } = opened.adopt(await openExisting(config), (one) => one.close())
    const lock = config.database === '' ? takeServeLock(join(config.data, 'serve.lock')) : undefined
    if (lock) opened.defer(() => lock.release())
    else if (config.database === '') throw busy(`the data folder ${config.data} is in use`)

    const next = createSealer(inFile ? stageMasterKey(config.data) : parseMasterKey(config.masterKeyNew))
    if (next.fingerprint === sealer.fingerprint) {
      terminal.print('the database is encrypted under PINFOLD_MASTER_KEY_NEW already; make it PINFOLD_MASTER_KEY')
      return exitCodes.ok
    }
    const count = await reseal(db, config, sealer, next)
    const kept = inFile ? promoteMasterKey(config.data) : undefined
    terminal.print(`encrypted ${count} secrets under the new master key`)
    terminal.print(
      inFile
        ? `backups from before need the old key, which is in ${kept}; delete it when there are none any more`
        : 'set PINFOLD_MASTER_KEY to the new key; backups from before need the old one',
    )
    return exitCodes.ok
  },
}

/** In one transaction, with the fingerprint by which the key that fits is known; answers with how many values. */
async function reseal(db: Db, { leaseMs }: Config, from: Sealer, to: Sealer): Promise<number> {
  // First of all: whoever comes while the others are watched is not one of those that were there and are silent.
  const still = new Map((await listNodes(db)).map(({ id, beat }) => [id, beat]))
  const alive = db.shared ? await livingNode(db, () => true, leaseMs) : undefined
  if (alive) throw busy(`a server uses the database, as ${alive.url}`)
  return db.tx(
    async (tx) => {
      await holdNodes(tx, db.engine)
      const started = (await listNodes(tx)).find(({ id, beat }) => db.shared && still.get(id) !== beat)
      if (started) throw busy(`a server has started to use the database, as ${started.url}`)
      const count = await resealRows(tx, from, to)
      await writeFact(tx, 'master_key', to.fingerprint)
      return count
    },
    { isolation: 'rowLocks' },
  )
}

function busy(why: string): CliError {
  return new CliError(exitCodes.unavailable, `${why}; stop every server first`)
}

export const keys: CommandGroup = {
  name: 'keys',
  summary: 'The keys that the server keeps',
  commands: [rotateMaster],
}
