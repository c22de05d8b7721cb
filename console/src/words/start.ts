// Texts of the home screen and of the search results.
import { counted } from './format.ts'

export const startWords = {
  startTitle: 'Home',
  startIntro:
    'Search for a path, a tag, a digest, a vulnerability or a name. The list shows the latest tag updates that you can see.',
  recentUpdates: 'Recent tag updates',
  noTagsAnywhere: 'There are no tags yet that you can see. To create one, push an image:',
  updatedBy: 'Updated by',
  resultsFor: (q: string) => `Results for ${q}`,
  currentTags: 'Current tags',
  vulnerableImages: 'Images with this vulnerability',
  foundResources: 'Groups, repositories and identities',
  kinds: { group: 'group', repo: 'repository', person: 'identity' },
  unknownImages: (count: number) =>
    `${counted(count, 'image')} could not be scanned completely and may have this vulnerability too.`,
  vulnerabilityUnscanned: (summary: string) =>
    `No image that you can see is known to have this vulnerability, but ${summary}.`,
  alsoUnscanned: (summary: string) => `There may be more images: ${summary}.`,
  nothingFound: {
    digest:
      'No current tag that you can see points to this digest. To include former tags, search for it with its repository: path@sha256:…',
    vulnerability: 'No image that you can see has this vulnerability. All of them were compared with the data sources.',
    path: 'There is no such path, or you do not have access to it. Check the spelling, or ask an owner for access.',
    word: 'Nothing that you can see has exactly this name. Enter the complete name.',
  },
}
