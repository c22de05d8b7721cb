/** Set of one public key whose private key is discarded, for identities that need no tokens. */
export const publicKeys = JSON.stringify({
  keys: [
    {
      kty: 'EC',
      crv: 'P-256',
      x: '-7YTPIGMqw3n9MnknazVTC0H1Y6ejzlakgIqAiweC-I',
      y: 'RX2W608NHrNf8SOjIFYKs7YcRrnehNeFugCwzS2Pna4',
    },
  ],
})
