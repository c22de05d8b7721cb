// Texts of the overview and of the search results.
import { counted } from './format.ts'

export const startWords = {
  noOrganizations: 'There are no organizations yet. To create one, run:',
  notMember:
    'You are not a member of an organization yet. Ask an owner to invite you. If this server allows it, you can also create one:',
  recentUpdates: 'Recent tag updates',
  noTagsAnywhere: 'There are no tags in this organization yet. To create one, push an image:',
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
