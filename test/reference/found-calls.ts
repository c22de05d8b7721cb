// Examples of searches, for images by their contents and for anything by its name, and of summaries.
import type { Json } from '../support/pinfold.ts'

export const foundCalls: readonly (readonly [method: string, request: Json, name?: string])[] = [
  ['control.scanning.v1.ScannedImagesService/ListVulnerableImages', { vulnerability: 'CVE-2026-1234' }],
  [
    'control.scanning.v1.ScannedImagesService/ListImagesWithPackage',
    { name: 'openssl', ecosystem: 'Alpine', versionRange: '>=1.1.1,<1.1.2', pageSize: 1 },
  ],
  ['control.scanning.v1.ScannedImagesService/ListImagePackages', { repoUid: '$app', digest: '$digest', pageSize: 2 }],
  [
    'control.scanning.v1.ScannedImagesService/CompareImages',
    { repoUid: '$app', digest: '$digest', baseDigest: '$older' },
  ],
  ['control.search.v1.SearchService/Search', { query: 'app', pageSize: 2 }],
  ['control.summaries.v1.SummariesService/GetImageSummaries', { repoUid: '$app', digests: ['$digest'] }],
  ['control.summaries.v1.SummariesService/GetImageLayers', { repoUid: '$app', digest: '$digest' }],
  ['control.summaries.v1.SummariesService/GetScopeSummaries', { uids: ['$org', '$app'] }],
  ['control.summaries.v1.SummariesService/GetImageOverview', { group: '$org' }],
  ['control.summaries.v1.SummariesService/GetTagUpdates', { group: '$org', limit: 2 }],
  ['control.summaries.v1.SummariesService/GetDryRunOverview', { group: '$org' }],
]
