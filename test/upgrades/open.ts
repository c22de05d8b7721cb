// Opens a copy of a release with the present code, at the time when the release was recorded.
import { readConfig } from '#config.ts'
import { operatorUid } from '#issuer/access-token.ts'
import { clientOf, startPinfold } from '../support/pinfold.ts'
import type { Asked } from './ask.ts'
import type { Copy, Release } from './release.ts'

/** The clock stands still, so that neither tokens nor invites nor keys of a release ever expire. */
export async function openCopy(release: Release, { data, database, masterKey }: Copy) {
  const listen = { host: '127.0.0.1', port: 0 }
  const pinfold = await startPinfold({
    ...readConfig(release.settings),
    // On PostgreSQL, a server migrates at its start only with this setting.
    migrateAtStart: true,
    listen,
    data,
    database,
    masterKey,
    logLevel: 'error',
    clock: () => new Date(release.now),
  })
  // The server has the URL of the recording, but listens on another port.
  const origin = `http://127.0.0.1:${pinfold.listenPort}`
  const tokens = new Map<string, Promise<string>>()
  const token = (uid: string, registry: boolean): Promise<string> => {
    const key = `${uid} ${registry}`
    const made = tokens.get(key) ?? pinfold.tokenFor(uid, registry ? { audience: new URL(pinfold.url).host } : {})
    tokens.set(key, made)
    return made
  }
  const asked: Asked = { origin, token, operator: operatorUid, people: release }
  return {
    pinfold: { ...pinfold, operator: clientOf(origin, pinfold.operator.token) },
    asked,
    [Symbol.asyncDispose]: () => pinfold[Symbol.asyncDispose](),
  }
}
