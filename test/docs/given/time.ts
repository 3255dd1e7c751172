export const urls = ['data:text/plain,a'];
export const url = 'data:text/plain,a';
