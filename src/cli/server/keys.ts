import { writeFact } from '#db/facts.ts'
import { resealRows } from '#db/sealed-rows.ts'
import { parseMasterKey, promoteMasterKey, stageMasterKey } from '#lib/crypto/master-key.ts'
import { createSealer, type Sealer } from '#lib/crypto/seal.ts'
import { openExisting } from '#open-database.ts'
import { exitCodes, usageError } from '../framework/cli-error.ts'
import type { Command, Commands } from '../framework/command.ts'
import { configOf, settingOptions } from '../framework/settings.ts'
import { requireStopped, type Stopped } from './stopped.ts'

const rotateMaster: Command = {
  details: `Stop every server first. The new key is made in the data folder; where the key comes from PINFOLD_MASTER_KEY,
PINFOLD_MASTER_KEY_NEW has to be the new one. Everything is encrypted anew or nothing is. When the command is killed, run
it again, or start the server, which takes the key that fits.`,
  options: settingOptions('data', 'database'),
  async run(terminal, options) {
    const config = { ...configOf(terminal, options), logLevel: 'warn' as const }
    const inFile = config.masterKey === ''
    if (!inFile && config.masterKeyNew === '') {
      throw usageError('PINFOLD_MASTER_KEY_NEW must be the new key; openssl rand -hex 32 makes one')
    }
    if (!inFile && parseMasterKey(config.masterKeyNew).equals(parseMasterKey(config.masterKey))) {
      throw usageError('PINFOLD_MASTER_KEY_NEW is PINFOLD_MASTER_KEY; it must be another key')
    }
    await using opened = new AsyncDisposableStack()
    // If there is no database, no folder must be created for its lock.
    const { db, sealer } = opened.adopt(await openExisting(config), (one) => one.close())
    const stopped = opened.adopt(await requireStopped(db, config), (one) => one.release())

    const next = createSealer(inFile ? stageMasterKey(config.data) : parseMasterKey(config.masterKeyNew))
    if (next.fingerprint === sealer.fingerprint) {
      terminal.print('the database is encrypted under PINFOLD_MASTER_KEY_NEW already; make it PINFOLD_MASTER_KEY')
      return exitCodes.ok
    }
    const count = await reseal(stopped, sealer, next)
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

/** Runs in one transaction with the fingerprint of the matching key. Returns the number of values. */
function reseal(stopped: Stopped, from: Sealer, to: Sealer): Promise<number> {
  return stopped.tx(async (tx) => {
    const count = await resealRows(tx, from, to)
    await writeFact(tx, 'master_key', to.fingerprint)
    return count
  })
}

export const keys: Commands = { 'rotate-master': rotateMaster }
