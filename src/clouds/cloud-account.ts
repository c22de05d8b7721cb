// Accounts that can be checked, and results of a check.
export type CloudAccount =
  | { cloud: 'amazon'; account: string }
  | { cloud: 'google'; projectId: string; projectNumber: string }
  /** Application ids by the component that uses them. */
  | { cloud: 'azure'; tenantId: string; clientIds: Record<string, string> }

/** A cloud that refuses is an answer like any other: `reason` is a word for programs, `message` for people. */
export type CloudAnswer = { ready: true } | { ready: false; reason: CloudReason; message: string }
export type CloudReason = 'UNREACHABLE' | 'REFUSED'

/** Returns a signed token for one cloud that identifies the caller. */
export type Assert = (claims: { subject: string; audience: string }) => Promise<string>

/** Origins of the clouds, without a path. */
export type CloudEndpoints = { googleSts: string; googleIam: string; amazonSts: string; azureLogin: string }

/** Name by which the cloud knows the component that checks an account. */
export const checker = 'canary'
