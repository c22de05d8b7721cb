// Folders and repositories.
import type { Screens } from '../app/area.ts'
import { GroupScreen } from '../screens/groups/group.tsx'
import { PullScreen, ReadmeScreen, RepoHistoryScreen, RepoSettingsScreen, TagsScreen } from '../screens/repos/repo.tsx'

export const screens: Screens = {
  group: ({ names, query }) => <GroupScreen names={names} query={query} />,
  tags: ({ names, query }) => <TagsScreen names={names} query={query} />,
  history: ({ names, query }) => <RepoHistoryScreen names={names} query={query} />,
  readme: ({ names, query }) => <ReadmeScreen names={names} query={query} />,
  pull: ({ names, query }) => <PullScreen names={names} query={query} />,
  repoSettings: ({ names, query }) => <RepoSettingsScreen names={names} query={query} />,
}
