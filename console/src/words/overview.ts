// Texts of the overview of an organization.
import { counted, numbers } from './format.ts'

export const overviewWords = {
  allRepositories: 'All repositories',
  allPolicies: 'All policies',
  allMirrors: 'All mirrors',
  allWebhooks: 'All webhooks',
  imagesPanel: 'Images by worst severity',
  worstImages: 'Images with the most serious vulnerabilities',
  noImages: 'No image has a tag yet. Push an image to see its vulnerabilities here.',
  withoutFindings: 'none found',
  byWorst: (count: number) => `${counted(count, 'tagged image')} examined. Each counts once, under its worst severity.`,
  partial: (count: number) => `${counted(count, 'image')} ${count === 1 ? 'was' : 'were'} not scanned completely.`,
  onlyNewestTags: (tags: string) => `Only the newest of ${tags} tags were examined.`,
  notScannedTitle: 'Not scanned completely',
  imageCount: (count: number) => counted(count, 'image'),
  noSourceCompared: 'No image was compared with a data source yet.',
  outdated: 'out of date',
  dryRunPanel: 'Policies in dry run',
  noDryRun: 'No admission policy in dry run applies to a recent image.',
  wouldDenyNone: (examined: number) => `would deny none of ${counted(examined, 'image')}`,
  dryRunWouldDeny: (denied: number, examined: number, examples: readonly string[]) =>
    `would deny ${numbers(denied)} of ${counted(examined, 'image')}: ${examples.join(', ')}`,
  onlyNewest: (count: number) => `Only the newest ${counted(count, 'image')} were examined.`,
  changeOfTag: 'Change',
  noChangeOfTag: 'no change',
  changeBy: (count: number, severity: string) => `${count > 0 ? '+' : '−'}${numbers(Math.abs(count))} ${severity}`,
  mirrorsPanel: 'Mirrors',
  mirrorsFine: (total: number) =>
    total === 0 ? 'There are no mirrors.' : `No failed check. Mirrors: ${numbers(total)}.`,
  webhooksPanel: 'Webhooks',
  webhooksFine: (total: number) =>
    total === 0 ? 'There are no webhooks.' : `No failing delivery. Webhooks: ${numbers(total)}.`,
  failingNow: 'failing',
  waiting: (count: number) => `${counted(count, 'event')} waiting.`,
  oldest: 'The oldest is from',
  storage: 'Storage',
  ofLimit: (limit: string) => `of ${limit} used`,
  noLimit: 'used, without a limit',
  repositoryCount: (count: string) => `Repositories: ${count}`,
}
