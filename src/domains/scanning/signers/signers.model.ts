import { kindOf } from '#lib/events/event-body.ts'

/** Who is believed what they say of vulnerabilities in a place until a day: whoever signs with a key. It never changes but to end. */
export type Signer = {
  uid: string
  /** A group, for all below it, or a repo. */
  scopeUid: string
  /** Who that is, as those say who trust them. */
  name: string
  /** In PEM, and the SHA-256 of it in hex. */
  publicKey: string
  fingerprint: string
  reason: string
  actor: string
  createTime: string
  expireTime: string
  /** Empty while it holds. `endActor` is empty where it has ended by itself. */
  endTime: string
  endActor: string
  endReason: string
}

export const signerType = 'registry.pinfold.dev/VexSigner'

export const aSigner = kindOf<Signer>('vex-signer')
export const anExpiredSigner = kindOf<Signer>('expired-vex-signer')

export const maxName = 128
export const maxReason = 2000
export const maxDays = 366
/** How many may be trusted at a time in one place, and in an organisation. */
export const most = { place: 20, organization: 200 }
/**
 * How many rows there may ever be of what signers say of one image, and how many may come of one document, which may be about
 * so many images of an index. Beyond them nothing more is hidden.
 */
export const mostSigned = { ofImage: 20_000, ofDocument: 100_000, images: 100 }
