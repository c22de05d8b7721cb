const explanations = {
  paced: 'it has been asked often enough for now',
  paused: 'it is left alone for a while, after what it answered',
  unauthorized: 'it wants another credential',
  forbidden: 'it refuses the credential',
  throttled: 'it has been asked too often',
  unavailable: 'it does not answer as it should',
  refused: 'it is at an address, or redirects to one, that may not be asked',
  'not-allowed': 'what may be followed there has been narrowed, and this path is not among it',
  guarded: 'a rule or a hold here keeps the tag as it is',
  malformed: 'its answer is not that of a registry',
  'lost-page': 'its list has a next page that cannot be followed, so what is on it is missing here',
  'too-large': 'its answer is too large',
  'over-limit': 'its answer is above a limit',
  'wrong-digest': 'its answer does not have the digest that it was asked for',
}
type More = { waitMs?: number | undefined; status?: number; limit?: string; cause?: unknown }
export type UpstreamReason = keyof typeof explanations

/** Failure of a request to another registry. The message has nothing of the answer; `limit` is the limit that is exceeded. */
export class UpstreamError extends Error {
  override name = 'UpstreamError'
  readonly reason: UpstreamReason
  /** Milliseconds to wait before the next request, if they are known. */
  readonly waitMs: number | undefined

  constructor(reason: UpstreamReason, more: More = {}) {
    const { waitMs, status, limit, cause } = more
    super(`${explanations[reason]}${status === undefined ? '' : ` (${status})`}${limit ? `: ${limit}` : ''}`, { cause })
    this.reason = reason
    this.waitMs = waitMs
  }
}
