const hello: string = 'hello';
export default hello;
