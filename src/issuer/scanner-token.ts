import { capabilityNumber, maskOf } from '#domains/iam/access/capabilities.ts'
import { operatorUid } from '#lib/uid.ts'
import type { Keyring } from './keyring.ts'
import { signAccessToken } from './sign-token.ts'

/** `url` is what clients call us. */
export type ScannerPull = { url: string; scanner: string; repo: { uid: string; path: string } }

const lifetimeSeconds = 10 * 60
const pulling = maskOf(['manifest.list', 'tag.list', 'repo.blobs.get', 'referrers.list'].map(capabilityNumber))

/**
 * Signs a token for the registry alone, with which a scanner that the operator has set up pulls from one repo. What it says of
 * the operator is cut to that twice: by the path, and by the uid, so that a repo which takes the path over is not meant.
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
