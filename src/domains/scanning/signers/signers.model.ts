import type { Ending } from '#domains/rules/rules.model.ts'
import { kindOf } from '#lib/events/event-body.ts'

/** A key that a member trusts at a scope until a time: VEX statements that it signs count there. */
export type Signer = Ending & {
  /** The name that the member gives the signer. */
  name: string
  /** In PEM, and its SHA-256 in hex. */
  publicKey: string
  fingerprint: string
  expireTime: string
}

export const signerType = 'registry.pinfold.dev/VexSigner'

export const aSigner = kindOf<Signer>('vex-signer')
export const anExpiredSigner = kindOf<Signer>('expired-vex-signer')

export const maxName = 128
export const maxDays = 366
/** How many may be trusted at a time at one scope, and in an organization. */
export const most = { place: 20, organization: 200 }
/**
 * How many rows there may ever be of what signers say of one image, and how many may come of one document, which may be about
 * so many images of an index. Beyond them nothing more is hidden.
 */
export const mostSigned = { ofImage: 20_000, ofDocument: 100_000, images: 100 }
