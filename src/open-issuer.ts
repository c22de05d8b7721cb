// Opens the database and its keys for commands next to a server, without the parts that serve requests.
import type { App } from './app.ts'
import type { Config } from './config.ts'
import { type Keyring, openKeyring } from './issuer/keyring.ts'
import { openExisting } from './open-database.ts'

/** Opens the issuer of an existing database, also next to a running server. */
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

/** Keyring with the signing keys and rotation of the settings. */
export function keyringOf(
  config: Config,
  { db, sealer }: Pick<App, 'db' | 'sealer'>,
  clock: () => Date,
): Promise<Keyring> {
  const { keyRotationDays: days, signingAlgorithms: algorithms } = config
  return openKeyring(db, sealer, () => clock().getTime(), { days, algorithms })
}
