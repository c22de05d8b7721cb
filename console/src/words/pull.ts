// Texts of the tab with pull commands.
export const pullWords = {
  pullTag: 'Tag',
  pullClients: 'Client',
  pinnedFirst:
    'The first pull is pinned by digest: it always returns the same image. The second one returns the image that the tag has at that time.',
  pullLogin: (user: string) => `The login asks for the password of the push token ${user}.`,
  pullToken: 'To sign in, use the user name and the password of a push token or a pull token.',
  pullTokens: 'Create a token',
  noTagsToPull: 'There is no image to pull yet. To create one, push an image:',
  loginStep: '# Sign in',
  pinnedStep: '# Pull this digest',
  tagStep: '# Pull the tag',
  secretStep: '# Create the secret for the sign-in',
  podStep: '# Use the image in a pod',
}
