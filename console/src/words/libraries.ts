// Texts of the catalog of libraries.
export const libraryWords = {
  allEcosystems: 'all',
  partOfName: 'Part of the name',
  noLibraries: 'There are no matching libraries. To import libraries from their repositories, run:',
  ecosystems: { ECOSYSTEM_JAVA: 'Java', ECOSYSTEM_PYTHON: 'Python' } as Record<string, string>,
  latest: 'Latest version',
  versions: 'Versions',
  versionsOf: (name: string) => `Versions of ${name}`,
}
