import { reencryptRows } from '#db/encrypted-rows.ts'
import { writeFact } from '#db/facts.ts'
import { parseMasterKey, promoteMasterKey, stageMasterKey } from '#lib/crypto/master-key.ts'
import { createSecretCipher, type SecretCipher } from '#lib/crypto/secret-cipher.ts'
import { openExisting } from '#open-database.ts'
import { exitCodes, usageError } from '../framework/cli-error.ts'
import type { Command, Commands } from '../framework/command.ts'
import { configOf, settingOptions } from '../framework/settings.ts'
import { requireStopped, type Stopped } from './stopped.ts'

const rotateMaster: Command = {
  details: `Stop every server first. If the master key is a file of the data folder, creates a new file. If the key is in PINFOLD_MASTER_KEY, set
PINFOLD_MASTER_KEY_NEW to the new key. All secrets are encrypted with the new key in one transaction.
If the command is interrupted, run it again. You can also start the server: it uses the key that matches the database.`,
  options: settingOptions('data', 'database'),
  async run(terminal, options) {
    const config = { ...configOf(terminal, options), logLevel: 'warn' as const }
    const inFile = config.masterKey === ''
    if (!inFile && config.masterKeyNew === '') {
      throw usageError(
        'nothing was changed: set PINFOLD_MASTER_KEY_NEW to the new key; openssl rand -hex 32 creates one',
      )
    }
    if (!inFile && parseMasterKey(config.masterKeyNew).equals(parseMasterKey(config.masterKey))) {
      throw usageError(
        'nothing was changed: PINFOLD_MASTER_KEY_NEW and PINFOLD_MASTER_KEY are the same; create a new key with openssl rand -hex 32',
      )
    }
    await using opened = new AsyncDisposableStack()
    // Without a database, the folder for the lock must not be created.
    const { db, cipher } = opened.adopt(await openExisting(config), (one) => one.close())
    const stopped = opened.adopt(await requireStopped(db, config), (one) => one.release())

    const next = createSecretCipher(inFile ? stageMasterKey(config.data) : parseMasterKey(config.masterKeyNew))
    if (next.fingerprint === cipher.fingerprint) {
      terminal.print(
        'the secrets are already encrypted with PINFOLD_MASTER_KEY_NEW; set PINFOLD_MASTER_KEY to this key',
      )
      return exitCodes.ok
    }
    const count = await reseal(stopped, cipher, next)
    const kept = inFile ? promoteMasterKey(config.data) : undefined
    terminal.print(`encrypted ${count} secrets with the new master key`)
    terminal.print(
      inFile
        ? `older backups need the old key, which is in ${kept}; delete it together with the last of them`
        : 'set PINFOLD_MASTER_KEY to the new key; keep the old key for older backups',
    )
    return exitCodes.ok
  },
}

/**
 * Encrypts all secrets with the new key, and stores the key's fingerprint in the same transaction. Returns the number of secrets.
 */
function reseal(stopped: Stopped, from: SecretCipher, to: SecretCipher): Promise<number> {
  return stopped.tx(async (tx) => {
    const count = await reencryptRows(tx, from, to)
    await writeFact(tx, 'master_key', to.fingerprint)
    return count
  })
}

export const keys: Commands = { 'rotate-master': rotateMaster }
