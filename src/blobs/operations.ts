// Operations on a bucket and their results, as labels of the metrics.

export const operations = [
  'PutObject',
  'GetObject',
  'HeadObject',
  'DeleteObject',
  'DeleteObjects',
  'ListObjects',
  'CreateMultipartUpload',
  'UploadPart',
  'CompleteMultipartUpload',
  'AbortMultipartUpload',
  'ListMultipartUploads',
] as const
export type Operation = (typeof operations)[number]

/**
 * Results of an attempt. `retried` and `away` are temporary failures. `refused` is permanent, for example because of wrong
 * credentials. `busy` got no connection in time and was not sent.
 */
export const results = ['ok', 'missing', 'retried', 'away', 'refused', 'busy'] as const
export type Observe = (operation: Operation, result: (typeof results)[number], seconds: number) => void
