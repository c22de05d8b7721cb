import type { Ending } from '#domains/rules/rules.model.ts'
import { kindOf } from '#lib/events/event-body.ts'

/**
 * A key that a member trusts in a scope until a time. VEX statements that are signed with the key can hide findings in that
 * scope.
 */
export type Signer = Ending & {
  /** Name that the member gives the signer. */
  name: string
  /** Public key in PEM, and its SHA-256 in hex. */
  publicKey: string
  fingerprint: string
  expireTime: string
}

export const signerType = 'registry.pinfold.dev/VexSigner'

export const toSignerResource = kindOf<Signer>('vex-signer')
export const toExpiredSignerResource = kindOf<Signer>('expired-vex-signer')

export const maxName = 128
export const maxDays = 366
/** Limits on the signers that are trusted now, in one scope and in an organization. */
export const most = { scope: 20, organization: 200 }
/**
 * Limits on the rows of signed statements on one image and from one document. `images` limits the images of an index that one
 * document can be about. If a limit is reached, no more findings are hidden.
 */
export const mostSigned = { ofImage: 20_000, ofDocument: 100_000, images: 100 }
