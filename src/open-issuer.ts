// What commands beside a server need of it: the database and its keys, and nothing of what answers requests.
import type { App } from './app.ts'
import type { Config } from './config.ts'
import { type Keyring, openKeyring } from './issuer/keyring.ts'
import { openExisting } from './open-database.ts'

/** What signs tokens, from a database that has been served before, also beside a running server. */
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

/** The keys that sign tokens, as the settings have them. */
export function keyringOf(
  config: Config,
  { db, sealer }: Pick<App, 'db' | 'sealer'>,
  clock: () => Date,
): Promise<Keyring> {
  const { keyRotationDays: days, signingAlgorithms: algorithms } = config
  return openKeyring(db, sealer, () => clock().getTime(), { days, algorithms })
}
