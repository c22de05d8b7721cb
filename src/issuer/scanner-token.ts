import { capabilityNumber, maskOf } from '#domains/iam/access/capabilities.ts'
import { operatorUid } from '#lib/uid.ts'
import type { Keyring } from './keyring.ts'
import { signAccessToken } from './sign-token.ts'

/** Pull of a scanner. `url` is the URL of this server. */
export type ScannerPull = { url: string; scanner: string; repo: { uid: string; path: string } }

const lifetimeSeconds = 10 * 60
const pulling = maskOf(['manifest.list', 'tag.list', 'repo.blobs.get', 'referrers.list'].map(capabilityNumber))

/**
 * Signs a registry token with which a scanner of the operator pulls from one repository. The token is limited by the path and by
 * the uid. So a later repository with the same path is not included.
 */
export async function signScannerToken(keyring: Keyring, { url, scanner, repo }: ScannerPull, now: Date) {
  return signAccessToken(keyring, {
    issuer: url,
    subject: operatorUid,
    audience: new URL(url).host,
    now,
    lifetime: lifetimeSeconds,
    narrowing: new Map([[repo.uid, pulling]]),
    access: [{ name: repo.path, actions: ['pull'] }],
    claims: { scanner },
  })
}
