// Opens a database and its signing keys, for commands on the machine of a server. Does not open the parts that serve requests.
import type { App } from './app.ts'
import type { Config } from './config.ts'
import { type Keyring, openKeyring } from './issuer/keyring.ts'
import { openExisting } from './open-database.ts'

/** Opens the issuer of an existing database. A server may be using the database at the same time. */
export async function openIssuer(
  config: Config,
  clock: () => Date = () => new Date(),
): Promise<Pick<App, 'db' | 'keyring' | 'clock'> & { close(): Promise<void> }> {
  await using opening = new AsyncDisposableStack()
  const opened = opening.adopt(await openExisting(config), (open) => open.close())
  const keyring = await keyringOf(config, opened, clock)
  const done = opening.move()
  return { db: opened.db, keyring, clock, close: () => done.disposeAsync() }
}

/** Opens the signing keys, with the algorithms and the rotation of the settings. */
export function keyringOf(
  config: Config,
  { db, cipher }: Pick<App, 'db' | 'cipher'>,
  clock: () => Date,
): Promise<Keyring> {
  const { keyRotationDays: days, signingAlgorithms: algorithms } = config
  return openKeyring(db, cipher, () => clock().getTime(), { days, algorithms })
}
