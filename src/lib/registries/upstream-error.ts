const explanations = {
  paced: 'our own request limit for this upstream is used up for now',
  paused: 'requests are paused after an earlier error',
  unauthorized: 'it rejected the credentials',
  forbidden: 'it denied access',
  throttled: 'its rate limit is exceeded',
  unavailable: 'it is unavailable or returned an error',
  refused: 'its address, or the target of its redirect, is not allowed',
  'not-allowed': 'the allow list of the upstream no longer includes this path',
  guarded: 'a tag rule or a legal hold protects the tag',
  malformed: 'its response is not a valid registry response',
  'lost-page': 'the next page of its list cannot be read, so some entries are missing here',
  'too-large': 'its response is too large',
  'over-limit': 'its response exceeds a limit',
  'wrong-digest': 'its response does not have the requested digest',
}
type More = { waitMs?: number | undefined; status?: number; limit?: string; cause?: unknown }
export type UpstreamReason = keyof typeof explanations

/**
 * Failure of a request to another registry. The message contains nothing of the response. `limit` is the limit that was exceeded.
 */
export class UpstreamError extends Error {
  override name = 'UpstreamError'
  readonly reason: UpstreamReason
  /** Milliseconds to wait before the next request. Undefined if unknown. */
  readonly waitMs: number | undefined

  constructor(reason: UpstreamReason, more: More = {}) {
    const { waitMs, status, limit, cause } = more
    super(`${explanations[reason]}${status === undefined ? '' : ` (${status})`}${limit ? `: ${limit}` : ''}`, { cause })
    this.reason = reason
    this.waitMs = waitMs
  }
}
